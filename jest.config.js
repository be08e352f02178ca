import { availableParallelism } from 'node:os'

const shared = {
  testEnvironment: 'node',
  // Not the whole tree: .run may hold a Python environment of 50,000 files.
  roots: ['<rootDir>/src', '<rootDir>/test'],
  extensionsToTreatAsEsm: ['.ts'],
  transform: {
    '^.+\\.ts$': [
      '@swc/jest',
      { jsc: { target: 'es2022', parser: { syntax: 'typescript' } }, module: { type: 'es6' } },
    ],
  },
}

/** Load both processors: run one after the other, with nothing beside them. */
const serial = [
  '<rootDir>/test/integration/failover/*.test.ts',
  '<rootDir>/test/integration/processes/kill-nine.test.ts',
  '<rootDir>/test/integration/processes/gateways-killed.test.ts',
  '<rootDir>/test/integration/faults/many-streams.test.ts',
  '<rootDir>/test/integration/faults/recovery.test.ts',
  '<rootDir>/test/integration/extproc/creates.test.ts',
]

export default {
  // For tests and hooks that hang. A hook starts several servers, and each has two minutes on a busy machine.
  testTimeout: 300_000,
  // jest-circus leaves an AsyncLocalStorage behind for every test file, and each of them slows every promise of its process. A worker that uses
  // more memory than this is replaced before its next file.
  workerIdleMemoryLimit: '300MB',
  // More than processors, since tests of integration wait for most of their time.
  maxWorkers: Math.min(8, Math.ceil(1.5 * availableParallelism())),
  projects: [
    { ...shared, displayName: 'unit', testMatch: ['<rootDir>/test/unit/**/*.test.ts'] },
    { ...shared, displayName: 'contract', testMatch: ['<rootDir>/test/contract/**/*.test.ts'] },
    { ...shared, displayName: 'fuzz', testMatch: ['<rootDir>/test/fuzz/**/*.test.ts'] },
    { ...shared, displayName: 'replay', testMatch: ['<rootDir>/test/replay/**/*.test.ts'] },
    {
      ...shared,
      displayName: 'integration',
      testMatch: ['<rootDir>/test/integration/**/*.test.ts', '<rootDir>/test/console/*.test.ts'],
      testPathIgnorePatterns: ['/node_modules/', ...serial.map((path) => path.replace('*', '.*'))],
    },
    { ...shared, displayName: 'integration-serial', testMatch: serial },
    { ...shared, displayName: 'cluster', testMatch: ['<rootDir>/test/cluster/**/*.test.ts'] },
    { ...shared, displayName: 'agents', testMatch: ['<rootDir>/test/agents/*.test.ts'] },
    // With a fleet of its own, for which there is no room beside the other one.
    { ...shared, displayName: 'vllm-models', testMatch: ['<rootDir>/test/vllm/models/*.test.ts'] },
    {
      ...shared,
      displayName: 'vllm',
      testMatch: ['<rootDir>/test/vllm/*.test.ts'],
      globalSetup: '<rootDir>/test/vllm/setup/start-fleet.mjs',
      globalTeardown: '<rootDir>/test/vllm/setup/stop-fleet.mjs',
    },
  ],
}
