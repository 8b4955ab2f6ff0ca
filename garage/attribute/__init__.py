"""Whose a document is: its class, its trust, its people, and the evidence for each.

`signals.attribute` is the pure part; `stage.AttributionStage` applies it to a source. What decides stands in data:
`path_rules.yaml` for folders, `tool_names.yaml` for names that no person bears.
"""
