import { allFlows, describeConversations } from './conversations-suite.ts'

describeConversations({ name: 'embedded engine', countsEveryStream: false, flows: allFlows }, {})
