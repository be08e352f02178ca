import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import { parse } from 'yaml'
import { loadConfig } from '../../../src/config/load-config.ts'
import { useFolder } from '../../support/use-folder.ts'

const folder = useFolder()

const chosen = { sessions: { store: 'redis', sliding: true }, listen: { admin: { host: '0.0.0.0' } } }
const pods = { PODS: '10.0.0.11:8000,10.0.0.12:8000,10.0.0.13:8000', KV_DIR: '/mnt/kv' }

test.each([
  { name: 'configuration', environment: {}, configOf: () => chosen },
  { name: 'admission', environment: pods, configOf: parse },
])('the example of docs/$name.md is a valid configuration', ({ name, environment, configOf }) => {
  const page = readFileSync(new URL(`../../../docs/${name}.md`, import.meta.url), 'utf8')
  const [, example = ''] = /```yaml\n([\s\S]*?)```/.exec(page) ?? []
  const filePath = join(folder(), 'config.yaml')
  writeFileSync(join(folder(), 'tenant-secret'), 'x'.repeat(32))
  writeFileSync(join(folder(), 'redis-url'), 'redis://host')
  writeFileSync(filePath, example.replaceAll('/run/secrets', folder()))
  expect(loadConfig({ filePath, environment })).toMatchObject({ kind: 'loaded', config: configOf(example) })
})
