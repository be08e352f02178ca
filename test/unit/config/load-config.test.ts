import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from '@jest/globals'
import { loadConfig } from '../../../src/config/load-config.ts'
import { useFolder } from '../../support/use-folder.ts'
import { essential, load, problemsOf, secret } from './load.ts'

describe('loadConfig', () => {
  const folder = useFolder()

  const write = (name: string, text: string): string => {
    const path = join(folder(), name)
    writeFileSync(path, text)
    return path
  }

  const yamlFile = (yaml: string): string => write('config.yaml', yaml)

  test('what is not set has its default', () => {
    expect(load(essential)).toMatchObject({
      listen: { extproc: { host: '127.0.0.1', port: 50051 }, admin: { host: '127.0.0.1', port: 9090 } },
      sessions: { store: 'memory', defaultTtlSeconds: 3600, sliding: false, unknownSession: 'miss' },
      turns: { leaseSeconds: 660, maxBodyBytes: 16 * 1024 * 1024, maxJsonDepth: 64, maxJsonKeys: 20_000 },
      routing: { policy: 'predicted-ttft', pods: ['10.0.0.1:8000'], healthIntervalMs: 1000 },
      kv: { connector: 'llamacpp-slots', directory: '/mnt/kv', loadBudgetMs: 30_000, prefillMsPerToken: 1 },
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
      expect(problemsOf({ ...essential, REDIS_URL: 'redis://host' })).toMatch(/^tenant\.secret .*must the secret/)
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
      expect(problemsOf(environment)).toMatch(
        /^CTX_TENANT_SECRET_FILE: tenant\.secretFile = ".*\/secret": its content must be a string of 32 characters or more$/,
      )
    })
  })

  test.each([
    ['32 blanks', ' '.repeat(32)],
    ['16 characters between blanks', `        ${'x'.repeat(16)}        `],
  ])('a secret of %s is refused', (_name, text) => {
    expect(problemsOf({ ...essential, CTX_TENANT_SECRET: text })).toBe(
      'CTX_TENANT_SECRET: tenant.secret: must have 32 characters without surrounding white space',
    )
  })

  test('a Redis URL with the memory store is ignored', () => {
    const { sessions } = load({ ...essential, REDIS_URL: 'redis://host', CTX_SESSIONS_STORE: 'memory' })
    expect(sessions).toMatchObject({ store: 'memory', ignoresRedis: true })
    expect(sessions).not.toHaveProperty('redisUrl')
  })

  test('the configuration is frozen at every depth', () => {
    const config = load(essential)
    const objects = [config, config.listen, config.listen.extproc, config.routing.pods, config.tenant, config.sessions]
    expect(objects.map(Object.isFrozen)).toEqual(objects.map(() => true))
  })

  test.each([
    ['an unknown group', 'session: {}', '1: session: no such option; did you mean sessions?'],
    ['an unknown option', 'log:\n  colour: red', '2: log.colour: no such option'],
    [
      'another value than those of a list',
      'log:\n  level: wrn',
      '2: log.level (CTX_LOG_LEVEL) = "wrn": must be one of trace, debug, info, warn, error, fatal, silent; did you mean warn?',
    ],
    ['a number instead of a group', 'routing: 5', '1: routing: must be a group of options'],
    ['a list instead of a group', 'routing: []', '1: routing: must be a group of options'],
    [
      'a unit of another kind',
      '# seconds\nsessions:\n  defaultTtlSeconds: 256MB',
      '3: sessions.defaultTtlSeconds (CTX_SESSIONS_DEFAULT_TTL_SECONDS or CTX_CACHE_TTL) = "256MB": must be a duration, 1 to 999999999 s: a whole number of s, or one with a unit (ms, s, m, h, d)',
    ],
    [
      'a wrong item of a list, by an alias',
      'routing: &name\n  pods: [a:1,\n    b]\nadmission: *name',
      '3: routing.pods.1 (CTX_ROUTING_PODS or PODS) = "b": must be host:port\n4: admission.pods: no such option',
    ],
    [
      'an option of a pool',
      'pools:\n- name: Chat\n  pods: [b:1]\n  kv: { directory: /b }',
      '2: pools.0.name (CTX_POOLS) = "Chat": must be lower case letters, digits and hyphens',
    ],
    [
      'a secret',
      'tenant:\n  secret: [hidden, hidden]',
      '2: tenant.secret (CTX_TENANT_SECRET): must be a string of 32 characters or more',
    ],
    [
      'credentials where none belong',
      'kv: { lmcache: { url: "http://me:hidden@host:1" } }',
      '1: kv.lmcache.url (CTX_KV_LMCACHE_URL or LMCACHE_URL) = "http://…@host:1": must be http://host:port',
    ],
    ['a list', '- a\n- b\n', ' must hold a mapping of options'],
    ['invalid YAML', 'log:\n  level: "debug\n', /^\d: no valid YAML: missing char$/],
    ['an option twice', 'log: {}\nlog: {}\n', '2: no valid YAML: duplicate key'],
    ['an alias without an anchor', 'log: *nothing\n', ' must hold a mapping of options'],
  ])('refuses a file with %s', (_name, yaml, problem) => {
    const file = yamlFile(yaml)
    const variables = yaml.includes('pods')
      ? { KV_DIR: '/mnt/kv', ...(yaml.includes('pools') ? essential : {}) }
      : essential
    const problems = problemsOf(variables, file).replaceAll(`${file}:`, '')
    if (typeof problem === 'string') expect(problems).toBe(problem)
    else expect(problems).toMatch(problem)
  })

  test.each([
    ['an unknown name', { CTX_LOG_LEVLE: 'info' }, 'CTX_LOG_LEVLE: no such option; did you mean CTX_LOG_LEVEL?'],
    [
      'a hexadecimal number',
      { CTX_LISTEN_ADMIN_PORT: '0x50' },
      'CTX_LISTEN_ADMIN_PORT: listen.admin.port = "0x50": must be a whole number, 0 to 65535',
    ],
    ['a port that is too high', { CTX_LISTEN_ADMIN_PORT: '65536' }, /= 65536: must be a whole number, 0 to 65535$/],
    ['a port by name', { CTX_ROUTING_KUBERNETES_PORTS: 'http' }, /"http": must be a whole number, 1 to 65535$/],
    [
      'a fraction of the unit',
      { CTX_CACHE_TTL: '1500ms' },
      /^CTX_CACHE_TTL: sessions\.defaultTtlSeconds = "1500ms": must be a duration, 1 to 999999999 s: a whole number of s/,
    ],
    [
      'a duration for a size',
      { CTX_TURNS_MAX_BODY_BYTES: '1h' },
      /= "1h": must be a size, 1024 to 1073741824 bytes: .* \(kB, MB, GB, TB, KiB, MiB, GiB, TiB\)$/,
    ],
    [
      'neither true nor false',
      { CTX_SESSIONS_SLIDING: '1' },
      'CTX_SESSIONS_SLIDING: sessions.sliding = "1": must be one of true, false',
    ],
    ['a pod without a port', { PODS: 'a:1,b' }, 'PODS: routing.pods.1 = "b": must be host:port'],
    ['a pod with a path', { PODS: 'a:1/x' }, 'PODS: routing.pods.0 = "a:1/x": must be host:port'],
    ['a pod with a port above 65535', { PODS: 'a:70000' }, /at most 65535/],
    ['a pod twice', { PODS: '[FD00::1]:1,[fd00:0::1]:1' }, /^PODS: routing.pods = .*: lists a pod twice$/],
    [
      'no pods',
      { PODS: '' },
      /^routing\.pods \(CTX_ROUTING_PODS or PODS\): .*give routing\.pods, routing\.dns or routing\.kubernetes/,
    ],
    [
      'pods and a DNS name',
      { CTX_ROUTING_DNS_NAME: 'x', CTX_ROUTING_DNS_PORT: '1' },
      'CTX_ROUTING_DNS_NAME: routing.dns.name = "x": give one of routing.pods, routing.dns and routing.kubernetes, not both',
    ],
    ['pods and a service', { CTX_ROUTING_KUBERNETES_SERVICE: 'x' }, /^CTX_ROUTING_KUBERNETES_SERVICE: .*not both/],
    ['the URL of another connector', { LMCACHE_URL: 'http://a:1' }, /^LMCACHE_URL: .*belongs to the connector lmcache/],
    ['an LMCache instance of a pod by name', { LMCACHE_INSTANCES: 'pod-0:80=a' }, /must be ip:port=instance/],
    [
      'a DNS name without a port',
      { PODS: '', CTX_ROUTING_DNS_NAME: 'x' },
      'routing.dns.port (CTX_ROUTING_DNS_PORT): must be set: a whole number, 1 to 65535',
    ],
    ['no folder', { KV_DIR: '' }, /^kv\.directory \(CTX_KV_DIRECTORY or KV_DIR\): .*needs the folder/],
    ['Redis without a URL', { CTX_SESSIONS_STORE: 'redis' }, /needs sessions\.redisUrl/],
    ['two names that differ', { CTX_KV_DIRECTORY: '/a' }, /CTX_KV_DIRECTORY and KV_DIR are both set, and differ/],
    [
      'a secret and a file of it',
      { CTX_TENANT_SECRET: secret, CTX_TENANT_SECRET_FILE: '/dev/null' },
      'CTX_TENANT_SECRET_FILE: tenant.secretFile = "/dev/null": give either this or tenant.secret, not both',
    ],
    [
      'a bound that the default does not keep',
      { CTX_SESSIONS_MAX_TTL_SECONDS: '60s' },
      'CTX_SESSIONS_MAX_TTL_SECONDS: sessions.maxTtlSeconds = "60s": sessions.defaultTtlSeconds (3600) must lie between sessions.minTtlSeconds (1) and sessions.maxTtlSeconds (60)',
    ],
    [
      'bounds that cross',
      { CTX_SESSIONS_MIN_TTL_SECONDS: '700000' },
      'CTX_SESSIONS_MIN_TTL_SECONDS: sessions.minTtlSeconds = 700000: sessions.minTtlSeconds (700000) must not exceed sessions.maxTtlSeconds (604800)',
    ],
    [
      'a cached answer that is larger than a message',
      { CTX_RESPONSE_CACHE_MAX_BYTES: '1GiB', CTX_TURNS_MAX_BODY_BYTES: '64KiB' },
      /^CTX_TURNS_MAX_BODY_BYTES: .*\(1048576\) must not exceed turns\.maxBodyBytes \(65536\)/,
    ],
    ['a grace shorter than a call', { CTX_REAPER_ANNOUNCE_GRACE_MS: '5000' }, /while it is still being stored/],
    ['a lease shorter than a call', { CTX_REAPER_REMOVAL_LEASE_MS: '5000' }, /two gateways remove/],
  ])('refuses an environment with %s', (_name, variables, problem) => {
    const problems = problemsOf({ ...essential, ...variables })
    if (typeof problem === 'string') expect(problems).toBe(problem)
    else expect(problems).toMatch(problem)
  })

  test.each([
    ['90s', { CTX_CACHE_TTL: '90s' }, { sessions: { defaultTtlSeconds: 90 } }],
    ['1d', { CTX_CACHE_TTL: '1d' }, { sessions: { defaultTtlSeconds: 86_400 } }],
    ['250ms', { CTX_SESSIONS_COMMAND_TIMEOUT_MS: '250ms' }, { sessions: { commandTimeoutMs: 250 } }],
    ['2m of milliseconds', { CTX_REAPER_ANNOUNCE_GRACE_MS: '2m' }, { reaper: { announceGraceMs: 120_000 } }],
    ['256MB', { CTX_TURNS_MAX_BODY_BYTES: '256MB' }, { turns: { maxBodyBytes: 256_000_000 } }],
    ['256MiB', { CTX_TURNS_MAX_BODY_BYTES: '256MiB' }, { turns: { maxBodyBytes: 268_435_456 } }],
    ['1GiB of stored KV', { CTX_KV_MAX_STORE_BYTES: '1GiB' }, { kv: { maxStoreBytes: 1_073_741_824 } }],
  ])('a unit: %s, from the environment and from a file', (_name, variables, config) => {
    expect(load({ ...essential, ...variables })).toMatchObject(config)
    const pool = 'pools:\n- { name: b, pods: [b:1], kv: { connector: none, callTimeoutMs: 20s } }\n'
    const { pools, turns } = load(essential, yamlFile(`${pool}turns: { leaseSeconds: 1h }`))
    expect({ callTimeoutMs: pools[0]?.kv.callTimeoutMs, lease: turns.leaseSeconds }).toEqual({
      callTimeoutMs: 20_000,
      lease: 3600,
    })
  })

  test('a name without a value counts as unset', () => {
    expect(load(essential, yamlFile('log:\nsessions:\n  # sliding: true\nturns: { maxJsonDepth: }\n'))).toEqual(
      expect.objectContaining({ log: { level: 'info' }, turns: load(essential).turns }),
    )
  })

  test('all problems are reported at once, including those across options', () => {
    const environment = {
      CTX_NOTHING: '1',
      CTX_LISTEN_ADMIN_PORT: 'x',
      CTX_SESSIONS_MIN_TTL_SECONDS: '700000',
      CTX_TENANT_SECRET_FILE: join(folder(), 'none'),
    }
    const problems = problemsOf(environment, yamlFile('log: { colour: red }\nturns: { leaseSeconds: 0 }\n'))
    expect(problems.match(/^CTX_NOTHING|(tenant|listen|sessions|log|turns|routing|kv)\.[\w.]+(?=[ :])/gm)).toEqual([
      'CTX_NOTHING',
      'tenant.secretFile',
      'listen.admin.port',
      'turns.leaseSeconds',
      'log.colour',
      'sessions.minTtlSeconds',
      'sessions.minTtlSeconds',
      'sessions.maxTtlSeconds',
      'routing.pods',
      // Named by the message on routing.pods.
      'routing.dns',
      'kv.directory',
    ])
  })

  test('a missing file is reported once, without consequential problems', () => {
    const missing = join(folder(), 'none')
    expect(problemsOf({ CTX_LISTEN_ADMIN_PORT: 'x' }, missing)).toBe(
      `${missing}: cannot be read (ENOENT: no such file or directory)\nCTX_LISTEN_ADMIN_PORT: listen.admin.port = "x": must be a whole number, 0 to 65535`,
    )
    const environment = { ...essential, CTX_TENANT_SECRET_FILE: missing, REDIS_URL: 'redis://host' }
    expect(problemsOf(environment)).toBe(
      `CTX_TENANT_SECRET_FILE: tenant.secretFile = "${missing}": cannot be read (ENOENT: no such file or directory)`,
    )
  })

  test('problems contain no secret', () => {
    const environment = { ...essential, CTX_TENANT_SECRET: 'hidden', REDIS_URL: 'http://hidden@host' }
    const byEnvironment = problemsOf(environment)
    expect(byEnvironment).toContain('tenant.secret')
    expect(byEnvironment).toContain('sessions.redisUrl')
    expect(byEnvironment).not.toContain('hidden')
    expect(problemsOf({ ...essential, CTX_POOLS: 'hidden' })).not.toContain('hidden')
    for (const yaml of [
      'tenant: { secret: hidden }\n  - "hidden',
      'tenant: hidden',
      'pools: [hidden, { apiKey: "hid den" }]',
    ])
      expect(problemsOf(essential, yamlFile(yaml))).not.toMatch(/hid ?den/)
  })

  test('__proto__ and constructor are unknown options', () => {
    expect(problemsOf(essential, yamlFile('__proto__: { log: { level: debug } }\n'))).toMatch(
      /__proto__: no such option/,
    )
    expect(problemsOf(essential, yamlFile('log: { constructor: 1 }\n'))).toMatch(/log.constructor: no such option/)
  })
})
