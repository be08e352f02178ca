// The one door to the runtime: engine/llama-runtime.ts imports this file from the folder into which
// install/install-llama-runtime.ts has copied it.
export { Template } from '@huggingface/jinja'
export { getLlama, TokenBias } from 'node-llama-cpp'
