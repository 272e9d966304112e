"""An MV after its first refresh -> renamed, put back, maintained or dropped: everything that commits and computes no row."""
