"""What models return, as Python objects: answers, entities, and how they are decoded."""
