import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import { loadConfig } from '../../../src/config/load-config.ts'

test('the example of docs/configuration.md is a valid configuration', () => {
  const folder = mkdtempSync(join(tmpdir(), 'config-'))
  try {
    const page = readFileSync(new URL('../../../docs/configuration.md', import.meta.url), 'utf8')
    const [, example = ''] = /```yaml\n([\s\S]*?)```/.exec(page) ?? []
    const filePath = join(folder, 'config.yaml')
    writeFileSync(join(folder, 'tenant-secret'), 'x'.repeat(32))
    writeFileSync(join(folder, 'redis-url'), 'redis://host')
    writeFileSync(filePath, example.replaceAll('/run/secrets', folder))
    expect(loadConfig({ filePath, environment: {} })).toMatchObject({
      kind: 'loaded',
      config: { sessions: { store: 'redis', sliding: true }, listen: { admin: { host: '0.0.0.0' } } },
    })
  } finally {
    rmSync(folder, { recursive: true })
  }
})
