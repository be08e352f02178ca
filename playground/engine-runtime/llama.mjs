// The one door to the runtime: src/engine/runtime/load-runtime.ts imports this file by its address once install.mjs has
// run.
export { Template } from '@huggingface/jinja'
export { getLlama, TokenBias } from 'node-llama-cpp'
