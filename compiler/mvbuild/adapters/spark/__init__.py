"""Engine port over PySpark."""
