package journal

// summary adds up parts in the order in which they lie.
type summary struct {
	Report
	line  int64 // of the file, up to here
	trail trail
}

func (s *summary) add(p *part) {
	if p.begin {
		s.line = 0
	}
	if p.begin && p.file.first {
		s.trail = trail{}
	}
	s.Bytes += int64(len(p.piece.lines)) + p.oversized
	s.Frames += p.frames
	s.SkippedBytes += p.skipped
	s.Gaps += p.gaps
	for why, n := range p.reasons {
		if n > 0 {
			s.Reasons[reasonNames[why]] += n
			s.Anomalies += n
		}
	}
	s.extremes(p)
	s.line += p.count
	s.follow(p)
}

// extremes keeps the first and the last anomaly.
func (s *summary) extremes(p *part) {
	if p.first == nil {
		return
	}
	first, last := *p.first, *p.last
	first.Line += s.line
	last.Line += s.line
	if s.First == nil {
		s.First = &first
	}
	s.Last = &last
}

// follow joins the trails of the parts.
func (s *summary) follow(p *part) {
	if !p.trail.begun {
		return
	}
	same := s.trail.begun && s.trail.epoch == p.head.epoch
	if _, gap := s.trail.step(&p.head.epoch, p.head.sequence); gap {
		s.Gaps++
	}
	s.Epochs += p.trail.epochs
	if same {
		s.Epochs--
	}
	s.trail.epoch, s.trail.last = p.trail.epoch, p.trail.last
}
