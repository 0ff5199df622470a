package agent

// SetEligible sets whether the programs of this agent are fit to lead, for example by the result of
// a health check. They are until SetEligible(false) is called. A campaign is eligible if its client
// allows it too. Election.SetEligible of package tenure says what that means. It may be called
// before the first campaign, and at any time.
func (a *Agent) SetEligible(eligible bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.unfit = !eligible
	for _, c := range a.campaigns {
		a.judge(c)
	}
}

// judge runs under the lock.
func (a *Agent) judge(c *campaign) { c.election.SetEligible(!a.unfit && !c.unfit) }

// setEligible takes the word of the client.
func (c *campaign) setEligible(eligible bool) {
	c.agent.mu.Lock()
	defer c.agent.mu.Unlock()
	c.unfit = !eligible
	c.agent.judge(c)
}
