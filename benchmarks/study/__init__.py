"""The paper's study: its datasets, methods, protocol, tables and figures. It uses only the public names of ibug."""
