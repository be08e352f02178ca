import type { Config } from '../../../src/config/config.ts'
import { type Environment, loadConfig } from '../../../src/config/load-config.ts'

/** Required by every gateway. */
export const essential = { PODS: '10.0.0.1:8000', KV_DIR: '/mnt/kv' }

export const secret = 'a-secret-of-32-characters-or-more'

/** @throws Error with the problems of a configuration that is not valid. */
export const load = (environment: Environment, filePath?: string): Config => {
  const outcome = loadConfig({ environment, filePath })
  if (outcome.kind === 'loaded') return outcome.config
  throw new Error(outcome.problems)
}

export const problemsOf = (environment: Environment, filePath?: string): string => {
  const outcome = loadConfig({ environment, filePath })
  return outcome.kind === 'invalid' ? outcome.problems : 'none'
}
