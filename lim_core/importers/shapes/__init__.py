"""What several families share: fields, messages, documents, rows, spans and traces."""
