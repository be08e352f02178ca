"""Writes a small Llama with random weights, its tokenizer and a chat template: make-model.py FOLDER

Everything is made here, from a fixed seed and from the sources of Python's own standard library: nothing is downloaded,
and one interpreter always makes the same model. Its text is noise; its prefill, its KV and its times are real.
"""

import os
import sys
import sysconfig
from pathlib import Path

# Decided before the libraries start their threads: the tokenizer's training is the same every time.
os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["HF_HUB_OFFLINE"] = "1"

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

SEED = 1
VOCABULARY = 4096
MAX_POSITIONS = 8192
PADDING, TURN_START, TURN_END = "<|endoftext|>", "<|im_start|>", "<|im_end|>"
TRAINING_BYTES = 2_000_000
# With bfloat16 vLLM's attention uses AMX wherever a processor announces it, and some virtual machines announce AMX and
# refuse its instructions.
DTYPE = torch.float16
CHAT_TEMPLATE = (
    "{% for message in messages %}"
    "<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n"
    "{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def training_texts() -> list[str]:
    """The first modules of the standard library by name, about 2 MB: prose in docstrings, and code."""
    texts: list[str] = []
    size = 0
    for path in sorted(Path(sysconfig.get_path("stdlib")).glob("*.py")):
        text = path.read_text(encoding="utf-8", errors="replace")
        texts.append(text)
        size += len(text)
        if size > TRAINING_BYTES:
            break
    return texts


def make_tokenizer() -> PreTrainedTokenizerFast:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=[PADDING, TURN_START, TURN_END],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(training_texts(), trainer)
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token=PADDING, eos_token=TURN_END, pad_token=PADDING
    )
    fast.chat_template = CHAT_TEMPLATE
    fast.model_max_length = MAX_POSITIONS
    return fast


def make_model(tokenizer: PreTrainedTokenizerFast) -> LlamaForCausalLM:
    torch.manual_seed(SEED)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=768,
        intermediate_size=2304,
        num_hidden_layers=12,
        num_attention_heads=12,
        num_key_value_heads=4,
        max_position_embeddings=MAX_POSITIONS,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        tie_word_embeddings=True,
        dtype=DTYPE,
    )
    return LlamaForCausalLM(config).to(DTYPE)


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = make_tokenizer()
    model = make_model(tokenizer)
    tokenizer.save_pretrained(folder)
    model.save_pretrained(folder)
    millions = sum(parameter.numel() for parameter in model.parameters()) / 1e6
    print(f"{millions:.1f} million parameters, {len(tokenizer)} tokens")


main()
