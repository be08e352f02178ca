import { afterEach, beforeAll, describe, expect, test } from '@jest/globals'
import type { ManagedChild } from '../../../playground/child-process.ts'
import { freePort } from '../../../playground/free-port.ts'
import { findEnvoy } from '../../../playground/install/find-envoy.ts'
import type { ServerTool } from '../../../playground/install/find-tool.ts'
import { toolsDir } from '../../../playground/paths.ts'
import { type StartEnvoyOptions, startEnvoy } from '../../../playground/start-envoy.ts'
import { isAlive } from './support.ts'

const config = (port: number, direct = 'hello'): string => `
admin:
  address: { socket_address: { address: 127.0.0.1, port_value: 0 } }
static_resources:
  listeners:
    - name: front
      address: { socket_address: { address: 127.0.0.1, port_value: ${port} } }
      filter_chains:
        - filters:
            - name: http
              typed_config:
                "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
                stat_prefix: front
                route_config:
                  virtual_hosts:
                    - name: all
                      domains: ["*"]
                      routes:
                        - match: { prefix: "/" }
                          direct_response: { status: 200, body: { inline_string: ${direct} } }
                http_filters:
                  - name: router
                    typed_config:
                      "@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router
`

let tool: ServerTool
const running: ManagedChild[] = []

const start = async (text: string, options: Partial<StartEnvoyOptions> = {}) => {
  const envoy = await startEnvoy({ tool, config: { text }, concurrency: 1, ...options })
  running.push(envoy.child)
  return envoy
}

beforeAll(async () => {
  tool = await findEnvoy({ env: process.env, toolsDir: toolsDir(), report: (line) => console.log(line) })
}, 600_000)
afterEach(async () => {
  await Promise.all(running.splice(0).map((child) => child.kill()))
})

describe('startEnvoy', () => {
  test('serves as soon as it is started, tells its admin address, and is gone when it is stopped', async () => {
    const port = await freePort()
    const { adminAddress, child } = await start(config(port))
    expect(await (await fetch(`http://127.0.0.1:${port}/`)).text()).toBe('hello')
    expect(await (await fetch(`http://${adminAddress}/ready`)).text()).toBe('LIVE\n')
    expect(await (await fetch(`http://${adminAddress}/server_info`)).json()).toMatchObject({
      command_line_options: { concurrency: 1, disable_hot_restart: true },
    })
    expect(await child.stop()).toEqual({ code: 0, signal: undefined })
    expect(isAlive(child.pid)).toBe(false)
  })

  test('two run side by side', async () => {
    const ports = [await freePort(), await freePort()] as const
    await Promise.all([start(config(ports[0], 'one')), start(config(ports[1], 'two'))])
    const texts = ports.map(async (port) => (await fetch(`http://127.0.0.1:${port}/`)).text())
    expect(await Promise.all(texts)).toEqual(['one', 'two'])
  })

  test('a wrong configuration is told with what Envoy printed', async () => {
    await expect(startEnvoy({ tool, config: { text: 'static_resources: { listener: [] }' } })).rejects.toThrow(
      /envoy ended with exit code 1 .*'listener'/s,
    )
  })

  test('without an admin address it is never ready, and does not stay', async () => {
    const lines: string[] = []
    const options = { tool, config: { text: '{}' }, readyTimeoutMs: 500, onLine: (line: string) => lines.push(line) }
    await expect(startEnvoy(options)).rejects.toThrow(/envoy was not ready after 500 ms, .*admin address/)
  })
})
