import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { packageRoot } from '../../launcher/tools-dir.ts'
import type { LlamaModule } from './llama-module.ts'

/** What came of looking for the runtime: the module, or a sentence on why it cannot be used. */
export type RuntimeOutcome =
  | { readonly kind: 'loaded'; readonly module: LlamaModule }
  | { readonly kind: 'unusable'; readonly reason: string }

const runtimeFolder = pathToFileURL(join(packageRoot(), 'playground/engine-runtime/'))

/** Imports node-llama-cpp from `engine-runtime/`, where `install.mjs` puts it. */
export async function loadRuntime(): Promise<RuntimeOutcome> {
  const installed = await stat(new URL('node_modules/node-llama-cpp', runtimeFolder)).catch(() => undefined)
  if (installed === undefined) {
    const installer = fileURLToPath(new URL('install.mjs', runtimeFolder))
    return { kind: 'unusable', reason: `llama.cpp is not installed; install it with: node ${installer}` }
  }
  const module: unknown = await import(new URL('llama.mjs', runtimeFolder).href)
  if (!isLlamaModule(module)) return { kind: 'unusable', reason: 'engine-runtime/llama.mjs lacks an export' }
  return { kind: 'loaded', module }
}

function isLlamaModule(value: unknown): value is LlamaModule {
  if (typeof value !== 'object' || value === null) return false
  return ['getLlama', 'TokenBias', 'Template'].every((name) => typeof Reflect.get(value, name) === 'function')
}
