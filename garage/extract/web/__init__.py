"""What a browser shows: charset, layout and markup of a page as Markdown."""
