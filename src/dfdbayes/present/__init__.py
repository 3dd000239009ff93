"""What shows a fit: text, pages, figures."""
