//! What Kimi K3 is: config, checkpoint files, layout, tokenizer, chat format, sampling. Touches no GPU.
