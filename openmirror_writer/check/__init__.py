"""Which rules of the landing zone a folder breaks."""

from openmirror_writer.check.check import Repaired, check, repair
from openmirror_writer.check.findings import Finding, Severity
from openmirror_writer.check.rules import RULES, Rule

__all__ = ["RULES", "Finding", "Repaired", "Rule", "Severity", "check", "repair"]
