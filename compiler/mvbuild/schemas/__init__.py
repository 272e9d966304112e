"""the tables of keys -> JSON Schemas of the YAML files that users write."""
