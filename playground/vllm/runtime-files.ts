import { join } from 'node:path'
import { packageRoot } from '../launcher/tools-dir.ts'

/** The Python files and requirement lists that the fleet is made from; they lie beside the sources, like engine-runtime. */
const runtimeFolder = (): string => join(packageRoot(), 'playground/vllm-runtime')

/** One file or folder of `vllm-runtime/`. */
export const runtimeFile = (name: 'requirements.txt' | 'overrides.txt' | 'make-model.py' | 'python-path'): string =>
  join(runtimeFolder(), name)

/** Where environment, models and fleets live unless the caller says otherwise; deleting it undoes every installation. */
export const vllmFolder = (): string => join(packageRoot(), '.run', 'vllm')
