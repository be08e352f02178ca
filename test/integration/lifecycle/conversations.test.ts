import { jest } from '@jest/globals'
import { allFlows, describeConversations } from './conversations-suite.ts'

jest.setTimeout(30_000)

describeConversations({ name: 'embedded engine', countsEveryStream: false, flows: allFlows }, {})
