import { join } from 'node:path'
import { startChild } from '../src/launcher/child-process.ts'
import { freePort } from '../src/launcher/free-port.ts'
import { packageRoot } from '../src/launcher/tools-dir.ts'
import { readyOrKilled } from '../src/launcher/wait-until-ready.ts'

/** What `make run` starts, on a free port. */
export interface BenchStack {
  /** Through Envoy. */
  readonly url: string
  /** The engines themselves, `host:port`. */
  readonly pods: readonly string[]
  stop(): Promise<unknown>
}

const readyTimeoutMs = 300_000

export const startBenchStack = async (): Promise<BenchStack> => {
  const port = await freePort()
  const child = await startChild({
    name: 'run',
    command: [process.execPath, join(packageRoot(), 'dist/main.js'), 'run'],
    env: { ...process.env, GATEWAY_PORT: String(port) },
  })
  const pattern = /^ready .* pods (\S+), (\S+)/
  await readyOrKilled(child, { kind: 'line', pattern }, { timeoutMs: readyTimeoutMs })
  const [, ...pods] = pattern.exec(child.output().find((line) => pattern.test(line)) ?? '') ?? []
  return { url: `http://127.0.0.1:${port}`, pods, stop: () => child.stop({ graceMs: 30_000 }) }
}
