"""How models compute times: values as functions of sizes and pairs, replay of messages, shared
links."""
