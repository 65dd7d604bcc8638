"""What several families price with: values as functions of sizes, values by pairs, and the replay of messages."""
