// Built without the dashboard: see index.html.
