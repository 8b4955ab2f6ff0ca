"""What is drawn: pages of PDF, pictures, and the recognition of text in them."""
