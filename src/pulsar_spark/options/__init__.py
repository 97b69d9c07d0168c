"""Options of a query: their table, their values, and the checks of a query."""
