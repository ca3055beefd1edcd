"""How fast are predictions, and how much memory do they need? Beside the model, a walk over leaf members, and peers."""
