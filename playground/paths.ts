import { createRequire } from 'node:module'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import type { Environment } from './run-command.ts'

const name = 'context-cache-gateway'

/**
 * `$XDG_CACHE_HOME/context-cache-gateway`: the programs that are installed for the playground (Envoy, Redis, llama.cpp)
 * and generated models. Deleting it undoes all installations.
 */
export const toolsDir = (env: Environment = ownEnvironment()): string =>
  join(absolute(env['XDG_CACHE_HOME']) ?? join(homedir(), '.cache'), name)

/** `$XDG_STATE_HOME/context-cache-gateway`: what outlives `run`, and is missed: stored KV, the tenant secret. */
export const stateDir = (env: Environment = ownEnvironment()): string =>
  join(absolute(env['XDG_STATE_HOME']) ?? join(homedir(), '.local', 'state'), name)

/** The environment of this process, for programs that it starts. */
// biome-ignore lint/style/noProcessEnv: children inherit all of it, not only what the gateway's configuration knows.
export const ownEnvironment = (): Environment => process.env

/** A relative path counts as unset: https://specifications.freedesktop.org/basedir-spec/latest/ */
const absolute = (path: string | undefined): string | undefined => (path?.startsWith('/') === true ? path : undefined)

/** The folder that holds this package's package.json, seen from the sources as from the compiled files. */
export const packageRoot = (): string => dirname(createRequire(import.meta.url).resolve('#package.json'))
