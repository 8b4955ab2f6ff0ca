"""What the readers of office documents share: packages, styles, sheets, slides, number formats."""
