"""an editor's buffers and questions -> diagnostics, definitions, hovers and completions, by the Language Server Protocol."""
