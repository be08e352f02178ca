import { jest } from '@jest/globals'
import { describeConversations } from './conversations-suite.ts'

jest.setTimeout(30_000)

describeConversations({ name: 'the embedded engine', countsEveryStream: false }, {})
