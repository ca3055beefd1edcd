"""Forged input ends with an answer or an error of ours, never with the process; random options keep what must hold."""
