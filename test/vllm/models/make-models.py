"""Writes a second model and a LoRA adapter beside a small Llama, both with random weights: make-models.py MODEL FOLDER"""

import json
import os
import shutil
import sys
from pathlib import Path

os.environ["HF_HUB_OFFLINE"] = "1"

import torch
from safetensors.torch import save_file
from transformers import LlamaConfig, LlamaForCausalLM

SEED = 2
RANK = 8


def make_model(model: Path, folder: Path) -> None:
    shutil.copytree(model, folder)
    LlamaForCausalLM(LlamaConfig.from_pretrained(model)).to(torch.float16).save_pretrained(folder)


def make_adapter(model: Path, folder: Path) -> None:
    config = LlamaConfig.from_pretrained(model)
    weights = {}
    for layer in range(config.num_hidden_layers):
        name = f"base_model.model.model.layers.{layer}.self_attn.q_proj"
        weights[f"{name}.lora_A.weight"] = torch.randn(RANK, config.hidden_size, dtype=torch.float16)
        weights[f"{name}.lora_B.weight"] = torch.randn(config.hidden_size, RANK, dtype=torch.float16)
    folder.mkdir()
    save_file(weights, folder / "adapter_model.safetensors")
    settings = {"peft_type": "LORA", "r": RANK, "lora_alpha": RANK, "target_modules": ["q_proj"], "bias": "none"}
    (folder / "adapter_config.json").write_text(json.dumps({**settings, "task_type": "CAUSAL_LM"}))


model, folder = Path(sys.argv[1]), Path(sys.argv[2])
torch.manual_seed(SEED)
make_model(model, folder / "code")
make_adapter(model, folder / "adapter")
