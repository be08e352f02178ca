import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import type { Config } from '../../../src/config/config.ts'
import { loadConfig } from '../../../src/config/load-config.ts'

const secret = 'a-secret-of-32-characters-or-more'

/** Required by every gateway. */
const essential = { PODS: '10.0.0.1:8000', KV_DIR: '/mnt/kv' }

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

  const load = (environment: Readonly<Record<string, string>>, yaml?: string): Config => {
    const filePath = yaml === undefined ? undefined : write('config.yaml', yaml)
    const outcome = loadConfig({ environment, filePath })
    if (outcome.kind === 'loaded') return outcome.config
    throw new Error(outcome.problems)
  }

  const problemsOf = (environment: Readonly<Record<string, string>>, yaml?: string): string => {
    const filePath = yaml === undefined ? undefined : write('config.yaml', yaml)
    const outcome = loadConfig({ environment, filePath })
    return outcome.kind === 'invalid' ? outcome.problems : 'none'
  }

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
    const { sessions, log } = load({ ...essential, CTX_SESSIONS_DEFAULT_TTL_SECONDS: '30' }, yaml)
    expect(sessions).toMatchObject({ defaultTtlSeconds: 30, minTtlSeconds: 10, maxTtlSeconds: 604_800 })
    expect(log.level).toBe('debug')
  })

  test('a variable sets an option of a group that the file has in part or not at all', () => {
    const yaml = 'routing: { policy: random }\n'
    const config = load({ ...essential, CTX_ROUTING_STICKINESS_FACTOR: '1.5', CTX_LISTEN_ADMIN_PORT: '0' }, yaml)
    expect(config.routing).toMatchObject({ policy: 'random', stickinessFactor: 1.5, pods: ['10.0.0.1:8000'] })
    expect(config.listen.admin.port).toBe(0)
  })

  test.each([
    { name: 'numbers', variables: { CTX_KV_PREFILL_MS_PER_TOKEN: '0.25' }, sets: { kv: { prefillMsPerToken: 0.25 } } },
    { name: 'true', variables: { CTX_SESSIONS_SLIDING: 'true' }, sets: { sessions: { sliding: true } } },
    { name: 'false', variables: { CTX_SESSIONS_SLIDING: 'false' }, sets: { sessions: { sliding: false } } },
    {
      name: 'lists',
      variables: { PODS: ' a:1, [::1]:2 ,' },
      sets: { routing: { pods: ['a:1', '[::1]:2'] } },
    },
    {
      name: 'an empty variable as none',
      variables: { CTX_LOG_LEVEL: '', REDIS_URL: '' },
      sets: { log: { level: 'info' }, sessions: { store: 'memory' } },
    },
    {
      name: 'the short names',
      variables: { CONNECTOR: 'none', KV_DIR: '/other' },
      sets: { kv: { connector: 'none', directory: '/other' } },
    },
    {
      name: 'both names that say the same',
      variables: { CTX_KV_DIRECTORY: '/mnt/kv' },
      sets: { kv: { directory: '/mnt/kv' } },
    },
    {
      name: 'DNS',
      variables: { PODS: '', CTX_ROUTING_DNS_NAME: 'pods.example', CTX_ROUTING_DNS_PORT: '8000' },
      sets: { routing: { pods: [], dns: { name: 'pods.example', port: 8000, refreshIntervalMs: 5000 } } },
    },
  ])('the environment takes $name', ({ variables, sets }) => {
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
    expect(load(essential, yaml).log.level).toBe('info')
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
      expect(load(essential, yaml)).toMatchObject({
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
    { name: '32 blanks', text: ' '.repeat(32) },
    { name: '16 characters between blanks', text: `        ${'x'.repeat(16)}        ` },
  ])('a secret of $name is refused', ({ text }) => {
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
    { name: 'an unknown group', yaml: 'session: {}', problem: /Unrecognized key: "session"/ },
    { name: 'an unknown option', yaml: 'log: { colour: red }', problem: /Unrecognized key: "colour"\n.*at log/ },
    { name: 'a wrong type', yaml: 'log: { level: [info] }', problem: /Invalid option.*\n.*at log\.level/ },
    {
      name: 'a number instead of a group',
      yaml: 'routing: 5',
      problem: /expected object, received number\n.*at routing/,
    },
    {
      name: 'a number as text',
      yaml: 'turns: { leaseSeconds: "9" }',
      problem: /expected number.*\n.*at turns\.leaseSeconds/,
    },
    { name: 'a list', yaml: '- a\n- b\n', problem: /config\.yaml must hold a mapping of options/ },
    { name: 'invalid YAML', yaml: 'log:\n  level: "debug\n', problem: /config\.yaml, line \d: no valid YAML \(\w+\)/ },
    { name: 'an option twice', yaml: 'log: {}\nlog: {}\n', problem: /line 2: no valid YAML \(DUPLICATE_KEY\)/ },
    { name: 'an alias without an anchor', yaml: 'log: *nothing\n', problem: /config\.yaml/ },
  ])('refuses a file with $name', ({ yaml, problem }) => {
    expect(problemsOf(essential, yaml)).toMatch(problem)
  })

  test.each([
    {
      name: 'an unknown name',
      variables: { CTX_LOG_LEVLE: 'info' },
      problem: /Unknown environment variable CTX_LOG_LEVLE/,
    },
    {
      name: 'a hexadecimal number',
      variables: { CTX_LISTEN_ADMIN_PORT: '0x50' },
      problem: /expected number, received string \(set by CTX_LISTEN_ADMIN_PORT\)\n.*at listen\.admin\.port/,
    },
    { name: 'a port that is too high', variables: { CTX_LISTEN_ADMIN_PORT: '65536' }, problem: /<=65535/ },
    { name: 'a fraction', variables: { CTX_LISTEN_ADMIN_PORT: '1.5' }, problem: /expected int/ },
    { name: 'neither true nor false', variables: { CTX_SESSIONS_SLIDING: 'yes' }, problem: /expected boolean/ },
    {
      name: 'a pod without a port',
      variables: { PODS: 'a:1,b' },
      problem: /must be host:port \(set by PODS\)\n.*at routing\.pods\.1/,
    },
    { name: 'a pod with a path', variables: { PODS: 'a:1/x' }, problem: /must be host:port/ },
    { name: 'a pod with a port above 65535', variables: { PODS: 'a:70000' }, problem: /at most 65535/ },
    { name: 'a pod twice', variables: { PODS: 'a:1,a:1' }, problem: /lists a pod twice/ },
    { name: 'no pods', variables: { PODS: '' }, problem: /give routing\.pods or routing\.dns/ },
    {
      name: 'pods and a DNS name',
      variables: { CTX_ROUTING_DNS_NAME: 'x', CTX_ROUTING_DNS_PORT: '1' },
      problem: /not both\n.*at routing\.dns/,
    },
    {
      name: 'a DNS name without a port',
      variables: { PODS: '', CTX_ROUTING_DNS_NAME: 'x' },
      problem: /at routing\.dns\.port/,
    },
    { name: 'no folder', variables: { KV_DIR: '' }, problem: /needs the folder.*\n.*at kv\.directory/ },
    { name: 'Redis without a URL', variables: { CTX_SESSIONS_STORE: 'redis' }, problem: /needs sessions\.redisUrl/ },
    {
      name: 'two names that differ',
      variables: { CTX_KV_DIRECTORY: '/a' },
      problem: /CTX_KV_DIRECTORY and KV_DIR are both set, and differ/,
    },
    {
      name: 'a secret and a file of it',
      variables: { CTX_TENANT_SECRET: secret, CTX_TENANT_SECRET_FILE: '/dev/null' },
      problem: /either this or tenant\.secret, not both/,
    },
    {
      name: 'a default TTL outside its bounds',
      variables: { CTX_SESSIONS_MAX_TTL_SECONDS: '60' },
      problem: /Must lie between.*\n.*at sessions\.defaultTtlSeconds/,
    },
    {
      name: 'bounds that cross',
      variables: { CTX_SESSIONS_MIN_TTL_SECONDS: '700000' },
      problem: /Must not exceed sessions\.maxTtlSeconds/,
    },
    {
      name: 'a grace shorter than a call',
      variables: { CTX_REAPER_ANNOUNCE_GRACE_MS: '5000' },
      problem: /while it is still being stored/,
    },
    {
      name: 'a lease shorter than a call',
      variables: { CTX_REAPER_REMOVAL_LEASE_MS: '5000' },
      problem: /two gateways remove/,
    },
  ])('refuses an environment with $name', ({ variables, problem }) => {
    expect(problemsOf({ ...essential, ...variables })).toMatch(problem)
  })

  test('all problems are reported at once, including those across options', () => {
    const environment = {
      CTX_NOTHING: '1',
      CTX_LISTEN_ADMIN_PORT: 'x',
      CTX_SESSIONS_MIN_TTL_SECONDS: '700000',
      CTX_TENANT_SECRET_FILE: join(folder, 'none'),
    }
    const problems = problemsOf(environment, 'log: { colour: red }\nrouting: { policy: best }\n')
    const about = [...problems.matchAll(/→ at (\S+)|CTX_NOTHING/g)].map(([whole, path]) => path ?? whole)
    expect(about.sort()).toEqual([
      'CTX_NOTHING',
      'kv.directory',
      'listen.admin.port',
      'log',
      'routing.policy',
      'sessions.defaultTtlSeconds',
      'sessions.minTtlSeconds',
      'tenant.secretFile',
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
    expect(problemsOf(essential, 'tenant: { secret: hidden }\n  - "hidden')).not.toContain('hidden')
  })

  test('__proto__ and constructor are unknown options', () => {
    expect(problemsOf(essential, '__proto__: { log: { level: debug } }\n')).toMatch(/Unrecognized key: "__proto__"/)
    expect(problemsOf(essential, 'log: { constructor: 1 }\n')).toMatch(/Unrecognized key: "constructor"/)
  })
})
