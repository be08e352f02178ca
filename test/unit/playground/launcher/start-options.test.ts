import { join, resolve } from 'node:path'
import { describe, expect, test } from '@jest/globals'
import { flag } from '../../../../playground/launcher/flag.ts'
import type { ServerTool } from '../../../../playground/launcher/server-tool.ts'
import { llamaServerCommand } from '../../../../playground/launcher/start-llama-server.ts'
import { redisConfiguration } from '../../../../playground/launcher/start-redis.ts'
import { packageRoot, toolsDir } from '../../../../playground/launcher/tools-dir.ts'

const tool: ServerTool = { command: ['/bin/server'], version: '1.0', origin: 'path' }

describe('toolsDir', () => {
  test('lies in the package', () => {
    expect(toolsDir()).toBe(join(packageRoot(), '.tools'))
    expect(packageRoot()).toBe(resolve('.'))
  })

  test('can be elsewhere', () => {
    expect(toolsDir({ override: '/opt/tools' })).toBe('/opt/tools')
  })
})

describe('redisConfiguration', () => {
  test('keeps nothing on the disk by default', () => {
    expect(redisConfiguration({ port: 6400, dir: '/data' }).split('\n')).toEqual([
      'bind 127.0.0.1',
      'port 6400',
      'dir "/data"',
      'save ""',
      'appendonly no',
      'maxmemory-policy noeviction',
      'daemonize no',
      '',
    ])
  })

  test.each([
    { name: 'a password with quotes', options: { password: 'a"b\\c d' }, line: 'requirepass "a\\"b\\\\c d"' },
    { name: 'a password cannot add a line', options: { password: 'a\nport 1' }, line: 'requirepass "a\\nport 1"' },
    { name: 'a memory limit', options: { maxmemoryBytes: 2_000_000 }, line: 'maxmemory 2000000' },
    { name: 'an append-only file', options: { persistence: 'append-only' as const }, line: 'appendonly yes' },
  ])('$name', ({ options, line }) => {
    expect(redisConfiguration({ port: 1, dir: '/', ...options }).split('\n')).toContain(line)
  })
})

describe('llamaServerCommand', () => {
  const command = (options: Partial<Parameters<typeof llamaServerCommand>[0]> = {}): string =>
    llamaServerCommand({ tool, modelPath: '/m.gguf', slotSavePath: '/kv', port: 8081, ...options }).join(' ')

  test('by default', () => {
    expect(command()).toBe(
      '/bin/server --slots --metrics --host 127.0.0.1 --port 8081 --model /m.gguf --parallel 2 --ctx-size 8192 --threads 1 --batch-size 512 --slot-save-path /kv --cache-ram 0',
    )
  })

  test('the context is counted per slot', () => {
    expect(command({ slots: 4, contextTokensPerSlot: 1000 })).toContain('--parallel 4 --ctx-size 4000')
  })

  test('name and further arguments', () => {
    expect(command({ modelAlias: 'noise', extraArguments: ['--no-warmup'] })).toMatch(/--alias noise .*--no-warmup$/)
  })
})

describe('flag', () => {
  test('leaves out what has no value', () => {
    expect([flag('--a', 1), flag('--b', ''), flag('--c', undefined)]).toEqual([['--a', '1'], ['--b', ''], []])
  })
})
