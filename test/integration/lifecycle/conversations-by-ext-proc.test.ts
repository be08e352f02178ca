import { jest } from '@jest/globals'
import { turnsByExtProc } from '../support/turns-by-ext-proc.ts'
import { describeConversations } from './conversations-suite.ts'

jest.setTimeout(30_000)

describeConversations(
  { name: 'the embedded engine, behind an Envoy without Wasm', countsEveryStream: false },
  { envoyConfig: turnsByExtProc },
)
