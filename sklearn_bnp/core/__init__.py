"""The engine: statistics, memo, batches, model, scheduler and the lap loop."""
