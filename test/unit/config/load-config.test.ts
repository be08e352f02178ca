import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { loadConfig } from '../../../src/config/load-config.ts'
import { essential, load, problemsOf, secret } from './load.ts'

describe('loadConfig', () => {
  let folder: string

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'config-'))
  })

  afterEach(() => {
    rmSync(folder, { recursive: true })
  })

  const write = (name: string, text: string): string => {
    const path = join(folder, name)
    writeFileSync(path, text)
    return path
  }

  const yamlFile = (yaml: string): string => write('config.yaml', yaml)

  test('defaults', () => {
    expect(load(essential)).toMatchObject({
      listen: { extproc: { host: '127.0.0.1', port: 50051 }, admin: { host: '127.0.0.1', port: 9090 } },
      sessions: { store: 'memory', defaultTtlSeconds: 3600, sliding: false, unknownSession: 'miss' },
      turns: { leaseSeconds: 660, maxBodyBytes: 16 * 1024 * 1024, maxJsonDepth: 64, maxJsonKeys: 20_000 },
      routing: { policy: 'predicted-ttft', pods: ['10.0.0.1:8000'], healthIntervalMs: 1000 },
      kv: { connector: 'llamacpp-slots', directory: '/mnt/kv', loadBudgetMs: 10_000, prefillMsPerToken: 1 },
      reaper: { intervalMs: 1000 },
      log: { level: 'info' },
    })
  })

  test('the environment overrides the file, the file the defaults', () => {
    const yaml = 'sessions: { defaultTtlSeconds: 60, minTtlSeconds: 10 }\nlog: { level: debug }\n'
    const { sessions, log } = load({ ...essential, CTX_SESSIONS_DEFAULT_TTL_SECONDS: '30' }, yamlFile(yaml))
    expect(sessions).toMatchObject({ defaultTtlSeconds: 30, minTtlSeconds: 10, maxTtlSeconds: 604_800 })
    expect(log.level).toBe('debug')
  })

  test('a variable sets an option of a group that the file has in part or not at all', () => {
    const yaml = 'routing: { policy: random }\n'
    const config = load(
      { ...essential, CTX_ROUTING_STICKINESS_FACTOR: '1.5', CTX_LISTEN_ADMIN_PORT: '0' },
      yamlFile(yaml),
    )
    expect(config.routing).toMatchObject({ policy: 'random', stickinessFactor: 1.5, pods: ['10.0.0.1:8000'] })
    expect(config.listen.admin.port).toBe(0)
  })

  test.each([
    ['numbers', { CTX_KV_PREFILL_MS_PER_TOKEN: '0.25' }, { kv: { prefillMsPerToken: 0.25 } }],
    ['true', { CTX_SESSIONS_SLIDING: 'true' }, { sessions: { sliding: true } }],
    ['false', { CTX_SESSIONS_SLIDING: 'false' }, { sessions: { sliding: false } }],
    ['lists', { PODS: ' a:1, [::1]:2 ,' }, { routing: { pods: ['a:1', '[::1]:2'] } }],
    [
      'an empty variable as none',
      { CTX_LOG_LEVEL: '', REDIS_URL: '' },
      { log: { level: 'info' }, sessions: { store: 'memory' } },
    ],
    ['the short names', { CONNECTOR: 'none', KV_DIR: '/other' }, { kv: { connector: 'none', directory: '/other' } }],
    ['both names that say the same', { CTX_KV_DIRECTORY: '/mnt/kv' }, { kv: { directory: '/mnt/kv' } }],
    [
      'DNS',
      { PODS: '', CTX_ROUTING_DNS_NAME: 'pods.example', CTX_ROUTING_DNS_PORT: '8000' },
      { routing: { pods: [], dns: { name: 'pods.example', port: 8000, refreshIntervalMs: 5000 } } },
    ],
  ])('the environment takes %s', (_name, variables, sets) => {
    expect(load({ ...essential, ...variables })).toMatchObject(sets)
  })

  test('CTX_CONFIG_FILE names the file, unless the caller does', () => {
    const CTX_CONFIG_FILE = write('by-environment.yaml', 'log: { level: debug }')
    const byEnvironment = loadConfig({ environment: { ...essential, CTX_CONFIG_FILE } })
    expect(byEnvironment).toMatchObject({ kind: 'loaded', config: { log: { level: 'debug' } } })
    const filePath = write('by-caller.yaml', 'log: { level: warn }')
    const byCaller = loadConfig({ environment: { ...essential, CTX_CONFIG_FILE }, filePath })
    expect(byCaller).toMatchObject({ kind: 'loaded', config: { log: { level: 'warn' } } })
  })

  test.each(['', '# nothing yet\n', '---\n'])('an empty file (%j) leaves the defaults', (yaml) => {
    expect(load(essential, yamlFile(yaml)).log.level).toBe('info')
  })

  describe('the secret', () => {
    test('is generated for the memory store, another one each time', () => {
      const [first, second] = [load(essential).tenant.secret, load(essential).tenant.secret]
      expect(first.length).toBeGreaterThanOrEqual(32)
      expect(first).not.toBe(second)
    })

    test('is required with Redis', () => {
      expect(problemsOf({ ...essential, REDIS_URL: 'redis://host' })).toMatch(/must the secret.*\n.*at tenant\.secret/)
      expect(load({ ...essential, REDIS_URL: 'redis://host', CTX_TENANT_SECRET: secret })).toMatchObject({
        tenant: { secret },
        sessions: { store: 'redis', redisUrl: 'redis://host' },
      })
    })

    test('and the Redis URL are read from files of their own', () => {
      const secretFile = write('secret', `${secret}\n`)
      const redisUrlFile = write('url', 'redis://:pass@host\n')
      const yaml = `tenant: { secretFile: ${secretFile} }\nsessions: { redisUrlFile: ${redisUrlFile} }\n`
      expect(load(essential, yamlFile(yaml))).toMatchObject({
        tenant: { secret },
        sessions: { store: 'redis', redisUrl: 'redis://:pass@host' },
      })
    })

    test('from a file is refused if it is too short', () => {
      const environment = { ...essential, CTX_TENANT_SECRET_FILE: write('secret', 'short\n') }
      expect(problemsOf(environment)).toMatch(/>=32 characters\n.*at tenant\.secret$/)
    })
  })

  test.each([
    ['32 blanks', ' '.repeat(32)],
    ['16 characters between blanks', `        ${'x'.repeat(16)}        `],
  ])('a secret of %s is refused', (_name, text) => {
    expect(problemsOf({ ...essential, CTX_TENANT_SECRET: text })).toMatch(
      /32 characters without surrounding white space .*\n.*at tenant\.secret$/,
    )
  })

  test('a Redis URL with the memory store is ignored', () => {
    const { sessions } = load({ ...essential, REDIS_URL: 'redis://host', CTX_SESSIONS_STORE: 'memory' })
    expect(sessions.store).toBe('memory')
    expect(sessions).not.toHaveProperty('redisUrl')
  })

  test('the configuration is frozen at every depth', () => {
    const config = load(essential)
    const objects = [config, config.listen, config.listen.extproc, config.routing.pods, config.tenant, config.sessions]
    expect(objects.map(Object.isFrozen)).toEqual(objects.map(() => true))
  })

  test.each([
    ['an unknown group', 'session: {}', /Unrecognized key: "session"/],
    ['an unknown option', 'log: { colour: red }', /Unrecognized key: "colour"\n.*at log/],
    ['a wrong type', 'log: { level: [info] }', /Invalid option.*\n.*at log\.level/],
    ['a number instead of a group', 'routing: 5', /expected object, received number\n.*at routing/],
    ['a number as text', 'turns: { leaseSeconds: "9" }', /expected number.*\n.*at turns\.leaseSeconds/],
    ['a list', '- a\n- b\n', /config\.yaml must hold a mapping of options/],
    ['invalid YAML', 'log:\n  level: "debug\n', /config\.yaml, line \d: no valid YAML \(\w+\)/],
    ['an option twice', 'log: {}\nlog: {}\n', /line 2: no valid YAML \(DUPLICATE_KEY\)/],
    ['an alias without an anchor', 'log: *nothing\n', /config\.yaml/],
  ])('refuses a file with %s', (_name, yaml, problem) => {
    expect(problemsOf(essential, yamlFile(yaml))).toMatch(problem)
  })

  test.each([
    ['an unknown name', { CTX_LOG_LEVLE: 'info' }, /Unknown environment variable CTX_LOG_LEVLE/],
    [
      'a hexadecimal number',
      { CTX_LISTEN_ADMIN_PORT: '0x50' },
      /expected number, received string \(set by CTX_LISTEN_ADMIN_PORT\)\n.*at listen\.admin\.port/,
    ],
    ['a port that is too high', { CTX_LISTEN_ADMIN_PORT: '65536' }, /<=65535/],
    ['a fraction', { CTX_LISTEN_ADMIN_PORT: '1.5' }, /expected int/],
    ['neither true nor false', { CTX_SESSIONS_SLIDING: 'yes' }, /expected boolean/],
    ['a pod without a port', { PODS: 'a:1,b' }, /must be host:port \(set by PODS\)\n.*at routing\.pods\.1/],
    ['a pod with a path', { PODS: 'a:1/x' }, /must be host:port/],
    ['a pod with a port above 65535', { PODS: 'a:70000' }, /at most 65535/],
    ['a pod twice', { PODS: 'a:1,a:1' }, /lists a pod twice/],
    ['no pods', { PODS: '' }, /give routing\.pods, routing\.dns or routing\.kubernetes/],
    ['pods and a DNS name', { CTX_ROUTING_DNS_NAME: 'x', CTX_ROUTING_DNS_PORT: '1' }, /not both\n.*at routing\.dns/],
    ['a DNS name without a port', { PODS: '', CTX_ROUTING_DNS_NAME: 'x' }, /at routing\.dns\.port/],
    ['no folder', { KV_DIR: '' }, /needs the folder.*\n.*at kv\.directory/],
    ['Redis without a URL', { CTX_SESSIONS_STORE: 'redis' }, /needs sessions\.redisUrl/],
    ['two names that differ', { CTX_KV_DIRECTORY: '/a' }, /CTX_KV_DIRECTORY and KV_DIR are both set, and differ/],
    [
      'a secret and a file of it',
      { CTX_TENANT_SECRET: secret, CTX_TENANT_SECRET_FILE: '/dev/null' },
      /either this or tenant\.secret, not both/,
    ],
    [
      'a default TTL outside its bounds',
      { CTX_SESSIONS_MAX_TTL_SECONDS: '60' },
      /Must lie between.*\n.*at sessions\.defaultTtlSeconds/,
    ],
    ['bounds that cross', { CTX_SESSIONS_MIN_TTL_SECONDS: '700000' }, /Must not exceed sessions\.maxTtlSeconds/],
    ['a grace shorter than a call', { CTX_REAPER_ANNOUNCE_GRACE_MS: '5000' }, /while it is still being stored/],
    ['a lease shorter than a call', { CTX_REAPER_REMOVAL_LEASE_MS: '5000' }, /two gateways remove/],
  ])('refuses an environment with %s', (_name, variables, problem) => {
    expect(problemsOf({ ...essential, ...variables })).toMatch(problem)
  })

  test('all problems are reported at once, including those across options', () => {
    const environment = {
      CTX_NOTHING: '1',
      CTX_LISTEN_ADMIN_PORT: 'x',
      CTX_SESSIONS_MIN_TTL_SECONDS: '700000',
      CTX_TENANT_SECRET_FILE: join(folder, 'none'),
    }
    const problems = problemsOf(environment, yamlFile('log: { colour: red }\nturns: { leaseSeconds: 0 }\n'))
    const about = [...problems.matchAll(/→ at (\S+)|CTX_NOTHING/g)].map(([whole, path]) => path ?? whole)
    expect(about.sort()).toEqual([
      'CTX_NOTHING',
      'kv.directory',
      'listen.admin.port',
      'log',
      'routing.pods',
      'sessions.defaultTtlSeconds',
      'sessions.minTtlSeconds',
      'tenant.secretFile',
      'turns.leaseSeconds',
    ])
  })

  test('a missing file is reported once, without consequential problems', () => {
    const missing = join(folder, 'none')
    expect(loadConfig({ environment: essential, filePath: missing })).toEqual({
      kind: 'invalid',
      problems: `✖ ${missing} cannot be read`,
    })
    const environment = { ...essential, CTX_TENANT_SECRET_FILE: missing, REDIS_URL: 'redis://host' }
    expect(problemsOf(environment)).toBe('✖ The file cannot be read\n  → at tenant.secretFile')
  })

  test('problems contain no secret', () => {
    const environment = { ...essential, CTX_TENANT_SECRET: 'hidden', REDIS_URL: 'http://hidden@host' }
    const byEnvironment = problemsOf(environment)
    expect(byEnvironment).toContain('tenant.secret')
    expect(byEnvironment).toContain('sessions.redisUrl')
    expect(byEnvironment).not.toContain('hidden')
    expect(problemsOf(essential, yamlFile('tenant: { secret: hidden }\n  - "hidden'))).not.toContain('hidden')
  })

  test('__proto__ and constructor are unknown options', () => {
    expect(problemsOf(essential, yamlFile('__proto__: { log: { level: debug } }\n'))).toMatch(
      /Unrecognized key: "__proto__"/,
    )
    expect(problemsOf(essential, yamlFile('log: { constructor: 1 }\n'))).toMatch(/Unrecognized key: "constructor"/)
  })
})
