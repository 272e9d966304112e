"""a name or a query -> its rows, every MV by its policy: from storage while that may stand for the query, else from the query."""
