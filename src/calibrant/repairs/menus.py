"""A menu of repairs fixed beforehand, one of which is chosen on the very rows that certify it."""
class MenuRecalibrator: pass
