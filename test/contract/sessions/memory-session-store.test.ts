import { memoryUnderTest } from './memory-under-test.ts'
import { describeSessionStore } from './session-store-suite.ts'
import { testOptions } from './store-under-test.ts'

describeSessionStore('the memory session store', async (tenantLimits) =>
  memoryUnderTest({ maxSessions: 1000, ...testOptions, tenantLimits }),
)
