"""Graph + Observed + Freshness -> Plan."""
