"""record + observation -> Freshness."""
