"""The text files that mvbuild copies into projects and pages."""
