"""Graph, RunResult -> the files of target/."""
