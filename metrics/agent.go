package metrics

// agentDefinitions are the metrics of an agent that campaigns for other programs.
var agentDefinitions = []*Definition{
	{
		Name: "tenure_agent_campaigns", Scope: Process,
		Help:      "Campaigns of the programs that use this agent.",
		readAgent: func(s *AgentState) float64 { return float64(s.Campaigns) },
	},
	{
		Name: "tenure_agent_leading", Scope: Process,
		Help:      "Programs that may act as leaders, by the clock at the scrape.",
		readAgent: func(s *AgentState) float64 { return float64(s.Leading) },
	},
	{
		Name: "tenure_agent_missed_heartbeats_total", Kind: Counter, Scope: Process,
		Help:      "Campaigns that ended because a heartbeat was missing.",
		readAgent: func(s *AgentState) float64 { return float64(s.MissedHeartbeats) },
	},
}

// AgentState is the state of an agent.
type AgentState struct {
	// Campaigns is how many programs take part, and Leading how many of them may act.
	Campaigns, Leading int
	// MissedHeartbeats counts the campaigns that ended because a heartbeat was missing.
	MissedHeartbeats uint64
}

// AddAgent adds the agent of this process to the Set. Package agent calls it. Gather calls state.
// A Set has one agent: the last one takes the place of any other.
func (s *Set) AddAgent(state func() AgentState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.agent = state
}

func (s *Set) gatherAgent(yield func(Sample)) {
	s.mu.Lock()
	read := s.agent
	s.mu.Unlock()
	if read == nil {
		return
	}
	state := read()
	for _, d := range agentDefinitions {
		yield(Sample{Definition: d, Since: s.since, Number: d.readAgent(&state)})
	}
}
