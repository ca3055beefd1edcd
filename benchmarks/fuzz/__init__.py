"""Cases that nobody has saved or asked: each ends with an answer or with an error of ours, never with the process."""
