"""A query, and what changed below it -> the least work that brings its MV up to date, and why."""
