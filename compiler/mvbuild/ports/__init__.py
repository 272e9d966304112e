"""What mvbuild needs of the world, as Protocols."""
